"""Labelled text for measuring the sanitiser and the learning extractor."""
