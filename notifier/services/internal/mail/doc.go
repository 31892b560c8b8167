// Package mail reads and writes e-mail addresses, and divides the recipients of
// a message into letters.
package mail
