//go:build !race

package safety

const raced = false
