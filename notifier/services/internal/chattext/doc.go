// Package chattext converts Markdown to the markup of chats that have their own.
package chattext
