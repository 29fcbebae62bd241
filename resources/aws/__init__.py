"""Amazon's services and those that speak their protocols: places, clients, and what their errors mean."""
