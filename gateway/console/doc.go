// Package console has the pages: for senders, for keys and devices, and the console. It fills the
// structs of package view and handles their forms. It leaves changes to the packages below it.
package console
