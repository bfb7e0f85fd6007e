#!/bin/sh
# Creates and updates both databases of Temporal; safe to repeat.
set -eu

schema() { # database, directory
    temporal-sql-tool --plugin "$SQL_PLUGIN" --db "$1" create-database || true
    temporal-sql-tool --plugin "$SQL_PLUGIN" --db "$1" setup-schema -v 0.0 || true
    temporal-sql-tool --plugin "$SQL_PLUGIN" --db "$1" update-schema -d "/etc/temporal/schema/postgresql/v12/$2/versioned"
}

schema temporal temporal
schema temporal_visibility visibility
