package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
	"github.com/karpenter-go/karpenter/plugin/cli"
)

// priceFilePeriod is how often the price file is read. A mounted ConfigMap changes by a symbolic link, of which notices of
// the file system do not tell on every system.
const priceFilePeriod = 10 * time.Second

// priceFileLimit, in bytes, is above what a ConfigMap may hold.
const priceFileLimit = 2 << 20

// priceFile follows the price file. A file that becomes invalid, or disappears, leaves the last good rules in place.
type priceFile struct {
	path string
	last []byte
	set  func([]pricerule.Rule) error
}

// addPriceFile reads the price file, and follows its changes. An invalid file at the start is an error.
func (w *wiring) addPriceFile() error {
	if w.o.changesPrices() {
		if err := w.prices.start(w.store.SetPriceRules, w.mgr.GetLogger().WithName("prices")); err != nil {
			return err
		}
	}
	if w.o.priceFile == "" {
		return nil
	}
	file := &priceFile{path: w.o.priceFile, set: w.prices.ofFile}
	if _, err := file.read(); err != nil {
		return cli.UsageErrorf("--price-file: %w", err)
	}
	log := w.mgr.GetLogger().WithName("prices")
	return w.mgr.Add(everywhere(func(ctx context.Context) error {
		ticker := time.NewTicker(priceFilePeriod)
		defer ticker.Stop()
		for failed := ""; ; {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
			changed, err := file.read()
			switch {
			case err != nil && err.Error() != failed:
				failed = err.Error()
				log.Error(err, "reading the price file; its last valid rules stay in use")
			case changed:
				log.Info("the rules of the price file are in use", "file", file.path)
			}
			if err == nil {
				failed = ""
			}
		}
	}))
}

// changesPrices reports whether rules change the prices of the provider.
func (o *controllerOptions) changesPrices() bool { return o.priceFile != "" || o.aws.commitments }

// read applies the rules of the file if it has changed.
func (p *priceFile) read() (changed bool, err error) {
	about, err := os.Stat(p.path)
	switch {
	case err != nil:
		return false, err
	case about.Size() > priceFileLimit:
		return false, fmt.Errorf("%s: %d bytes, want %d at most", p.path, about.Size(), priceFileLimit)
	}
	data, err := os.ReadFile(p.path)
	if err != nil || p.last != nil && bytes.Equal(data, p.last) {
		return false, err
	}
	rules, err := pricerule.Parse(p.path, data)
	if err != nil {
		return false, err
	}
	if err := p.set(rules); err != nil {
		return false, fmt.Errorf("%s: %w", p.path, err)
	}
	p.last = bytes.Clone(data)
	return true, nil
}
