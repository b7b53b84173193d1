"""The pure heart: jobs, states, outcomes, retries. No I/O, no asyncio, no threads."""
