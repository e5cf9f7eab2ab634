"""Write one file beyond what a file may have."""

with open("large", "wb", buffering=0) as stream:
    while True:
        stream.write(bytes(1 << 20))
