// Package mail reads and writes e-mail addresses, and writes header fields and
// MIME parts of e-mails.
package mail
