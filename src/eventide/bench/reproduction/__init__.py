"""What the w-event benchmark (Schaeler et al., 2022) found and published, looked for in our own results.

All that reproduces the findings of others stands here, and nothing else; a report's page shows it in one section.
"""
