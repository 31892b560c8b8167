// Package console has the pages: those to send from, those of keys and devices, and the
// console. It fills the structs of package view, and handles what their forms send. It
// changes nothing by itself: packages below it do.
package console
