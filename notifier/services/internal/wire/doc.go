// Package wire connects to servers that do not speak HTTP, and keeps such
// connections open for the next message.
package wire
