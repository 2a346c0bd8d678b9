"""What experiments end with in place of the leaderboard: functions of records, registered in `spinbench.reports`."""
