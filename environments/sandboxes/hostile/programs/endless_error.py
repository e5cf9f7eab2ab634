"""End with an exception that never says what it is."""


class Forged(Exception):
    def __str__(self):
        while True:
            pass


raise Forged
