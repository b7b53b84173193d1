"""The recorder: what AI coding assistants do, captured, made safe, understood and learned from.

hook · import · telemetry → sanitise → event + message + job  (one commit)
                                          │
        consumers: conversations, metrics, insights   (can be made anew)
                                          │
        jobs: sanitize_ai_validation → extract_learning → mine_upload
"""
