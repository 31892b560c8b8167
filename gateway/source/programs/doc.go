// Package programs has the formats of the built-in sources, one file a program. Importing it
// registers them with package source. It exports only the format of rulers, because the gateway
// stores their alerts.
//
// Most formats are data: the fields that make a payload one of the program, and text templates. The
// API of a chat or push service has functions that read its requests and write its answers. They
// share package compose; the parts of templates that several programs share are in templates_*.go.
// A program that needs several files, such as Slack, is a package below this one.
//
// Samples of requests are in testdata, in a folder for each program, with the messages that they
// make.
package programs
