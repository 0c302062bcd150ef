"""Reports: findings become text, effects and pictures."""
