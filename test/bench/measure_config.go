//go:build linux

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

// urlMap returns a map directive of Caddy with n lines that have the same URLs
// as urlKeys.
func urlMap(n int) string {
	var out strings.Builder
	out.WriteString("map {path} {url} {tag} {\n")
	for i := 0; i < n; i += 3 {
		fmt.Fprintf(&out, "\t\t/k%d/1 discord://%018d/%068d ops\n", i, i, i)
		fmt.Fprintf(&out, "\t\t/k%d/2 mailtos://user:pass@example.com?to=a%d@example.com -\n", i, i)
		fmt.Fprintf(&out, "\t\t/k%d/3 jsons://host-%d.example.com/alerts/%d -\n", i, i, i)
	}
	out.WriteString("\t}\n\trespond ok")
	return out.String()
}

// configurations measures starts and reloads with many URLs: in keys of a site,
// in keys of the global option, and in a directive of Caddy alone. Caddy reads
// the three in the same way, so the last one shows its part.
func (b *bench) configurations() error {
	plain, err := b.plainCaddy()
	if err != nil {
		return err
	}
	type row struct {
		name, binary string
		urls         int
		config       siteConfig
	}
	var rows []row
	for _, n := range []int{0, 10, 1000, 30000} {
		rows = append(rows, row{fmt.Sprintf("%d, in a site", n), b.binary, n, siteConfig{keys: urlKeys(n)}})
		if n >= 1000 {
			rows = append(rows, row{fmt.Sprintf("%d, in the global option", n), b.binary, n, siteConfig{global: "notify {\n" + urlKeys(n) + "\t}"}})
		}
		if n != 10 {
			rows = append(rows, row{fmt.Sprintf("%d, Caddy alone", n), plain, n, siteConfig{plain: urlMap(n)}})
		}
	}
	rounds := min(b.rounds, 3)
	figures := make([]configFigures, len(rows))
	for range rounds {
		for i, r := range rows {
			if err := b.measureConfig(r.binary, r.config, &figures[i]); err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
		}
	}
	fmt.Printf("%-28s %10s %10s %10s %14s %12s %14s\n", "configured URLs", "start ms", "CPU ms", "reload ms", "reload CPU ms", "resident MiB", "live bytes/URL")
	empty := map[string]float64{} // live bytes without URLs, by binary
	for i, r := range rows {
		f, perURL := figures[i], "-"
		if r.urls == 0 {
			empty[r.binary] = median(f.live)
		} else if r.urls >= 1000 {
			perURL = fmt.Sprintf("%.0f", (median(f.live)-empty[r.binary])/float64(r.urls))
		}
		fmt.Printf("%-28s %10.0f %10.0f %10.0f %14.0f %12.1f %14s\n", r.name, median(f.start), median(f.cpu), median(f.reload), median(f.reloadCPU), median(f.resident), perURL)
	}
	return nil
}

// configFigures are the figures of a row in each round: times in ms, resident
// in MiB, live in bytes.
type configFigures struct {
	start, cpu, reload, reloadCPU, resident, live []float64
}

// measureConfig measures a start, the memory some seconds later, and a reload.
func (b *bench) measureConfig(binary string, config siteConfig, f *configFigures) error {
	c, err := b.start(binary, config)
	if err != nil {
		return err
	}
	defer c.stop()
	used, err := c.cpu()
	if err != nil {
		return err
	}
	time.Sleep(3 * time.Second)
	resident := c.memory("VmRSS")
	u, err := c.usage(true)
	if err != nil {
		return err
	}
	took, reloadCPU, err := c.reload(b)
	if err != nil {
		return err
	}
	f.start, f.cpu = append(f.start, ms(c.answered)), append(f.cpu, ms(used))
	f.reload, f.reloadCPU = append(f.reload, ms(took)), append(f.reloadCPU, ms(reloadCPU))
	f.resident, f.live = append(f.resident, resident), append(f.live, u.settled)
	return nil
}

// plainCaddy returns a binary of Caddy without this module.
func (b *bench) plainCaddy() (string, error) {
	path := filepath.Join(b.dir, "plain")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, build(path, "github.com/caddyserver/caddy/v2/cmd/caddy")
}

// binaries compares the binary with one of Caddy alone.
func (b *bench) binaries() error {
	plain, err := b.plainCaddy()
	if err != nil {
		return err
	}
	fmt.Printf("%-28s %10s %16s %10s %12s\n", "binary", "MiB", "first answer ms", "CPU ms", "resident MiB")
	type program struct {
		name, path string
		config     siteConfig
		first      []float64
		cpu        []float64
		resident   []float64
	}
	programs := []program{
		{name: "Caddy", path: plain, config: siteConfig{plain: "respond ok"}},
		{name: "Caddy with notify", path: b.binary, config: siteConfig{keys: b.destinationKey("one", "", 1)}},
	}
	for range b.rounds {
		for i := range programs {
			p := &programs[i]
			c, err := b.start(p.path, p.config)
			if err != nil {
				return err
			}
			used, err := c.cpu()
			p.first, p.cpu, p.resident = append(p.first, ms(c.answered)), append(p.cpu, ms(used)), append(p.resident, c.memory("VmRSS"))
			c.stop()
			if err != nil {
				return err
			}
		}
	}
	for _, p := range programs {
		info, err := os.Stat(p.path)
		if err != nil {
			return err
		}
		fmt.Printf("%-28s %10.1f %16.0f %10.0f %12.1f\n", p.name, float64(info.Size())/(1<<20), median(p.first), median(p.cpu), median(p.resident))
	}
	return nil
}
