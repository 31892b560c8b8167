// Package tally counts what became of deliveries, by destination and by key, in the half
// hours of the last 24 hours.
//
// A [Counter] counts in memory. What a gateway has counted in a half hour is one record, which
// package tallystore keeps in the queue.
package tally
