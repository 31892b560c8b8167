// Package xmpp sends messages to users and rooms of XMPP servers.
package xmpp
