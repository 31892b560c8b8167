// Package compose has what several programs share: how a payload becomes the
// lines, the type and the state of a message, and what answers and IDs look
// like.
package compose
