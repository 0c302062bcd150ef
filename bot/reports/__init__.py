"""Reports: findings as text, effects and charts."""
