"""What an agent remembers: kept, consolidated, forgotten, found again."""
