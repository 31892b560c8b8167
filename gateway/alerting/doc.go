// Package alerting keeps incidents and silences, and applies the rules of
// keys over time.
package alerting
