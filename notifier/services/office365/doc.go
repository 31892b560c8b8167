// Package office365 sends e-mail from mailboxes at Microsoft, through the Graph
// API.
package office365
