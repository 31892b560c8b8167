// Package urlsyntax reads and writes notification URLs before it is known
// what their parameters mean: it divides a URL into its parts, finds values
// at the places of a template, and prints them there.
package urlsyntax
