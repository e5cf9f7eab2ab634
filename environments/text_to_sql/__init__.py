"""Text-to-SQL: questions about a company's database, whose habits no schema tells.

world     tasks made from the schema, gold queries, scores, a reviewer's remarks
company   the database: schema, rows by seed, and untrusted queries within bounds
"""

from langgraft.environments.text_to_sql.company import OUTLET, SHOP, Answer, Company
from langgraft.environments.text_to_sql.world import Remark, SQLTask, TextToSQL

__all__ = ["OUTLET", "SHOP", "Answer", "Company", "Remark", "SQLTask", "TextToSQL"]
