// Package chattext converts Markdown to the markup of chats that have their own, and
// breaks mentions and links in texts of strangers.
package chattext
