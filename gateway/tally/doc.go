// Package tally counts the outcomes of deliveries, by destination and by key, for each half hour of
// the last 24 hours.
//
// A [Counter] counts in memory. The counts of a gateway in a half hour are one record, which
// package tallystore stores in the queue.
package tally
