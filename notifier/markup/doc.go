// Package markup prepares texts for destinations: it converts between plain
// text, Markdown, HTML and the markup of chats, replaces names of emojis, and cuts
// a message to the lengths that a destination accepts.
//
// A text is read into a tree of HTML elements (convert_tree.go for HTML,
// read_chat.go for chats), and written from it (write.go).
//
// The cost of every function is bounded by the length of the text, because
// clients write the texts.
package markup
