// Package markup prepares texts for destinations: it converts between plain
// text, Markdown and HTML, replaces names of emojis, and cuts a message to the
// lengths that a destination accepts.
//
// The cost of every function is bounded by the length of the text, because
// clients write the texts.
package markup
