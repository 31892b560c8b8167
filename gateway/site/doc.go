// Package site knows who may send what where. A [Site] is one handler of a configuration in
// use: its keys, limits and rules of access. A [Directory] has all sites of a configuration.
// Saved keys and devices are found through functions ([Finder], [Receivers]), which other
// packages provide.
package site
