package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// urlKeys returns keys with three URLs each, n URLs in total, of services that
// are common in configurations.
func urlKeys(n int) string {
	var out strings.Builder
	for i := 0; i < n; i += 3 {
		fmt.Fprintf(&out, "\t\tkey k%d {\n", i)
		for j, url := range []string{
			fmt.Sprintf("discord://%018d/%068d ops", i, i),
			fmt.Sprintf("mailtos://user:pass@example.com?to=a%d@example.com", i),
			fmt.Sprintf("jsons://host-%d.example.com/alerts/%d", i, i),
		} {
			if i+j < n {
				fmt.Fprintf(&out, "\t\t\turl %s\n", url)
			}
		}
		out.WriteString("\t\t}\n")
	}
	return out.String()
}

// configurations measures starts and reloads with many URLs.
func (b *bench) configurations() error {
	fmt.Printf("%-28s %10s %10s %10s %12s %14s\n", "configured URLs", "start ms", "CPU ms", "reload ms", "resident MiB", "live bytes/URL")
	var empty float64
	for _, n := range []int{0, 10, 1000, 30000} {
		rounds := b.rounds
		if n >= 30000 {
			rounds = min(rounds, 3)
		}
		var start, cpu, reload, resident, live []float64
		for range rounds {
			c, err := b.start(b.binary, siteConfig{keys: urlKeys(n)})
			if err != nil {
				return err
			}
			used, err := c.cpu()
			if err == nil {
				err = b.measureConfig(c, &reload, &resident, &live)
			}
			c.stop()
			if err != nil {
				return err
			}
			start, cpu = append(start, ms(c.answered)), append(cpu, ms(used))
		}
		perURL := "-"
		if n == 0 {
			empty = median(live)
		} else if n >= 1000 {
			perURL = fmt.Sprintf("%.0f", (median(live)-empty)/float64(n))
		}
		fmt.Printf("%-28d %10.0f %10.0f %10.0f %12.1f %14s\n", n, median(start), median(cpu), median(reload), median(resident), perURL)
	}
	return nil
}

// measureConfig measures the memory of a process some seconds after its start,
// and a reload.
func (b *bench) measureConfig(c *caddy, reload, resident, live *[]float64) error {
	time.Sleep(3 * time.Second)
	*resident = append(*resident, c.memory("VmRSS"))
	u, err := c.usage(true)
	if err != nil {
		return err
	}
	*live = append(*live, u.settled)
	took, err := c.reload(b)
	*reload = append(*reload, ms(took))
	return err
}

// binaries compares the binary with one of Caddy alone.
func (b *bench) binaries() error {
	plain := filepath.Join(b.dir, "plain")
	if err := build(plain, "github.com/caddyserver/caddy/v2/cmd/caddy"); err != nil {
		return err
	}
	fmt.Printf("%-28s %10s %16s %12s\n", "binary", "MiB", "first answer ms", "resident MiB")
	for _, p := range []struct {
		name, path string
		config     siteConfig
	}{
		{"Caddy", plain, siteConfig{plain: true}},
		{"Caddy with notify", b.binary, siteConfig{keys: b.destinationKey("one", "", 1)}},
	} {
		info, err := os.Stat(p.path)
		if err != nil {
			return err
		}
		var first, resident []float64
		for range b.rounds {
			c, err := b.start(p.path, p.config)
			if err != nil {
				return err
			}
			first, resident = append(first, ms(c.answered)), append(resident, c.memory("VmRSS"))
			c.stop()
		}
		fmt.Printf("%-28s %10.1f %16.0f %12.1f\n", p.name, float64(info.Size())/(1<<20), median(first), median(resident))
	}
	return nil
}
