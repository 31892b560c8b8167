// Package gateway assembles the rooms below it, and hands them over at a
// reload.
package gateway
