// Package irc sends messages to channels and users of IRC networks.
package irc
