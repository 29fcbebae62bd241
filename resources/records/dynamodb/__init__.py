"""Records in a DynamoDB table: a million documents and more, many workers on many machines."""
