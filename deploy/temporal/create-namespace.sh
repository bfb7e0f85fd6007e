#!/bin/sh
# Creates the namespace and registers the search attributes that the worker checks at start-up; safe to repeat.
set -eu
: "${TEMPORAL_NAMESPACE:=gpumend}"
# At least the longest attempts window of the policy: attempts are remembered through closed runs.
: "${RETENTION:=30d}"

tries=60
until temporal operator cluster health >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { echo "Temporal did not answer at ${TEMPORAL_ADDRESS:-localhost:7233} within two minutes" >&2; exit 3; }
    sleep 2
done

temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
    temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention "$RETENTION"

for attribute in Cluster Node Machine Pool Rack Fault Step; do
    temporal operator search-attribute create --namespace "$TEMPORAL_NAMESPACE" --name "$attribute" --type Keyword
done
temporal operator search-attribute create --namespace "$TEMPORAL_NAMESPACE" --name Steps --type KeywordList
temporal operator search-attribute create --namespace "$TEMPORAL_NAMESPACE" --name DueAt --type Datetime
