package catalog

import (
	"bytes"
	"cmp"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed catalog.json.gz
var embedded []byte

// Load returns the embedded catalog with the features that AWS's pages name, the same one on every call.
func Load() *Catalog { return load() }

var load = sync.OnceValue(func() *Catalog {
	catalog, err := Read(bytes.NewReader(embedded))
	if err != nil {
		panic(err) // the file is embedded in the binary and tested
	}
	for i := range catalog.Types {
		catalog.Types[i].addFeatures()
	}
	return catalog
})

// Read reads a compressed catalog and validates it.
func Read(compressed io.Reader) (*Catalog, error) {
	text, err := gzip.NewReader(compressed)
	if err != nil {
		return nil, fmt.Errorf("decompressing the catalog of instance types: %w", err)
	}
	return parse(text)
}

func parse(text io.Reader) (*Catalog, error) {
	decoder := json.NewDecoder(text)
	decoder.DisallowUnknownFields()
	catalog := &Catalog{}
	if err := decoder.Decode(catalog); err != nil {
		return nil, fmt.Errorf("decoding the catalog of instance types: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("decoding the catalog of instance types: something follows the object, want one object")
	}
	slices.SortFunc(catalog.Types, func(a, b Type) int { return strings.Compare(a.Name, b.Name) })
	if err := catalog.check(); err != nil {
		return nil, fmt.Errorf("checking the catalog of instance types: %w", err)
	}
	return catalog, nil
}

// Pack reads a catalog as JSON, validates it, and writes it in the compressed form that Read reads. Equal input results
// in equal output.
func Pack(text io.Reader, compressed io.Writer) error {
	catalog, err := parse(text)
	if err != nil {
		return err
	}
	packed, err := gzip.NewWriterLevel(compressed, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("compressing the catalog of instance types: %w", err)
	}
	if err := errors.Join(json.NewEncoder(packed).Encode(catalog), packed.Close()); err != nil {
		return fmt.Errorf("compressing the catalog of instance types: %w", err)
	}
	return nil
}

// check returns an error for data that would silently make a type useless or wrong.
func (c *Catalog) check() error {
	for region, stamp := range c.Meta.PriceStamps {
		if _, err := time.Parse(time.RFC3339, stamp); err != nil {
			return fmt.Errorf("meta.priceStamps[%q]: is %q, want a time such as 2026-07-20T13:44:30Z", region, stamp)
		}
	}
	for i := range c.Types {
		t := &c.Types[i]
		if i > 0 && t.Name == c.Types[i-1].Name {
			return fmt.Errorf("type %s: is a duplicate, want it once", t.Name)
		}
		if err := cmp.Or(t.checkSize(), t.checkMarket(c)); err != nil {
			return fmt.Errorf("type %q: %w", t.Name, err)
		}
	}
	return nil
}

func (t *Type) checkSize() error {
	family, size, dot := strings.Cut(t.Name, ".")
	switch {
	case !dot || family == "" || size == "":
		return errors.New("name: want a family, a dot and a size, such as m5.large")
	case t.VCPUs <= 0 || t.MemoryMiB <= 0:
		return fmt.Errorf("vcpu, memMiB: are %d and %d, want more than zero", t.VCPUs, t.MemoryMiB)
	case t.ENIs <= 0 || t.IPv4PerENI <= 0:
		return fmt.Errorf("enis, ipv4: are %d and %d, want more than zero", t.ENIs, t.IPv4PerENI)
	case t.Cards > 1 && (t.ENIsCard0 <= 0 || t.ENIsCard0 > t.ENIs):
		return fmt.Errorf("enisCard0: is %d of %d interfaces on %d cards, want a part of them", t.ENIsCard0, t.ENIs, t.Cards)
	case len(t.Architectures) == 0 || len(t.Usage) == 0:
		return errors.New("arch, usage: want at least one each")
	case t.Hypervisor != "" && t.Hypervisor != HypervisorNitro && t.Hypervisor != HypervisorXen:
		return fmt.Errorf("hypervisor: is %q, want nitro, xen or nothing", t.Hypervisor)
	case t.NVMeGB > 0 && t.DiskGB > 0, (t.StorageGB() > 0) != (t.Disks > 0):
		return fmt.Errorf("nvmeGB, diskGB, disks: are %d, %d and %d, want one kind of storage on at least one disk, or none",
			t.NVMeGB, t.DiskGB, t.Disks)
	}
	return nil
}

func (t *Type) checkMarket(c *Catalog) error {
	for region, letters := range t.ZoneLetters {
		if !slices.Contains(c.Meta.ZoneRegions, region) || letters == "" {
			return fmt.Errorf("zones[%q]: is %q, want letters of a region that meta.zoneRegions lists", region, letters)
		}
	}
	for region, price := range t.Prices {
		if _, known := c.Meta.PriceStamps[region]; !known || price <= 0 || math.IsInf(price, 0) {
			return fmt.Errorf("usd[%q]: is %v, want a price above zero of a region that meta.priceStamps lists", region, price)
		}
	}
	return nil
}
