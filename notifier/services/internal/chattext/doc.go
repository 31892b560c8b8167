// Package chattext breaks mentions and links in texts of strangers.
package chattext
