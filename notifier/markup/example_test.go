package markup_test

import (
	"fmt"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

func ExampleConvert() {
	fmt.Println(markup.Convert("# Backup\n\nAll **12** volumes", markup.Markdown, markup.HTML))
	fmt.Println(markup.Convert("<h1>Backup</h1><p>All <b>12</b> volumes", markup.HTML, markup.Markdown))
	fmt.Println(markup.Convert("<h1>Backup</h1><p>All <b>12</b> volumes", markup.HTML, markup.Text))
	fmt.Println(markup.Convert("free < 10 %\nsee log", markup.Text, markup.HTML))
	// Output:
	// <h1>Backup</h1>
	// <p>All <strong>12</strong> volumes</p>
	// # Backup
	//
	// All **12** volumes
	// Backup
	// All 12 volumes
	// free &lt; 10 %<br/>see log
}

func ExampleLimits_Fit() {
	limits := markup.Limits{Title: 250, Body: 24}
	body := "Volume 1 is saved.\nVolume 2 is saved.\nVolume 3 is missing."
	for _, part := range limits.Fit("Backup", body, markup.Text, markup.Text, markup.OverflowSplit) {
		fmt.Printf("%s: %s\n", part.Title, part.Body)
	}
	// Output:
	// Backup [1/3]: Volume 1 is saved.
	// Backup [2/3]: Volume 2 is saved.
	// Backup [3/3]: Volume 3 is missing.
}

func ExampleReplaceEmojis() {
	fmt.Println(markup.ReplaceEmojis("done :+1: at 12:30"))
	// Output: done 👍 at 12:30
}
