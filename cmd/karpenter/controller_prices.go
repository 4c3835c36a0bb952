package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"

	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
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
	log  logr.Logger
	// failed is the error of the last reading, "" for none.
	failed string
}

// addPriceFile reads the price file, and follows its changes. If it is invalid at the start, no rules apply, and no node is
// removed voluntarily until it is valid: the controller still launches nodes.
func (w *wiring) addPriceFile() error {
	log := w.mgr.GetLogger().WithName("prices")
	if w.o.changesPrices() {
		if err := w.prices.start(w.store.SetPriceRules, log); err != nil {
			return err
		}
	}
	if w.o.priceFile == "" {
		return nil
	}
	file := &priceFile{path: w.o.priceFile, set: w.prices.ofFile, log: log}
	w.prices.awaitFile()
	file.follow()
	return w.mgr.Add(everywhere(func(ctx context.Context) error {
		ticker := time.NewTicker(priceFilePeriod)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
				file.follow()
			}
		}
	}))
}

// follow reads the file, and logs a change and a new error.
func (p *priceFile) follow() {
	failed := ""
	changed, err := p.read()
	switch {
	case err != nil:
		if failed = err.Error(); failed != p.failed {
			p.log.Error(err, "reading the price file; its last valid rules stay in use, and without any, no node is removed voluntarily")
		}
	case changed:
		p.log.Info("the rules of the price file are in use", "file", p.path)
	}
	p.failed = failed
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
