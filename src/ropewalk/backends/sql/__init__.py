"""What the SQL stores share: SQL kept in files, records as rows, and schema migrations. No driver is imported here."""
