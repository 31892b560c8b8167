// Package compose has the helpers that several programs share: for the lines, the type and the
// state of a message, and for answers and IDs.
package compose
