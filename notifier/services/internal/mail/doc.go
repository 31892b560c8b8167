// Package mail reads and writes e-mail addresses, and holds the recipients of
// an e-mail.
package mail
