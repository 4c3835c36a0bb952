package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// document is the part of SPDX 2.3 that is written (https://spdx.github.io/spdx-spec/v2.3).
type document struct {
	Version       string         `json:"spdxVersion"`
	License       string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []part         `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

// part is a Go module, or Go's standard library.
type part struct {
	ID          string      `json:"SPDXID"`
	Name        string      `json:"name"`
	Version     string      `json:"versionInfo"`
	Download    string      `json:"downloadLocation"`
	Analyzed    bool        `json:"filesAnalyzed"`
	Checksums   []checksum  `json:"checksums,omitempty"`
	Identifiers []reference `json:"externalRefs,omitempty"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Kind string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const root = "SPDXRef-karpenter"

// listContents reads from a binary which modules it was linked from, and returns them as an SBOM.
func listContents(path string, program []byte, o options) ([]byte, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading what %s was built from: %w", path, err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(program))
	d := document{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: "karpenter " + o.release,
		Namespace: "https://" + info.Main.Path + "/spdx/" + sum,
		Creation:  creation{o.epoch.Format(time.RFC3339), []string{"Tool: tools/image"}},
		Packages: []part{{
			ID: root, Name: info.Main.Path, Version: o.release, Download: "git+https://" + info.Main.Path,
			Checksums:   []checksum{{"SHA256", sum}},
			Identifiers: purl("pkg:golang/" + info.Main.Path + "@" + o.release),
		}},
		Relationships: []relationship{{"SPDXRef-DOCUMENT", "DESCRIBES", root}},
	}
	d.add(part{Name: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go"), Download: "https://go.dev/dl/", Identifiers: purl("pkg:golang/stdlib@" + strings.TrimPrefix(info.GoVersion, "go"))})
	for _, module := range info.Deps {
		d.add(moduleOf(module))
	}
	return json.MarshalIndent(d, "", "  ")
}

func (d *document) add(p part) {
	p.ID = fmt.Sprintf("SPDXRef-module-%d", len(d.Packages))
	d.Packages = append(d.Packages, p)
	d.Relationships = append(d.Relationships, relationship{root, "DEPENDS_ON", p.ID})
}

func moduleOf(m *debug.Module) part {
	if m.Replace != nil {
		m = m.Replace
	}
	return part{Name: m.Path, Version: m.Version, Download: "https://" + m.Path, Identifiers: purl("pkg:golang/" + m.Path + "@" + m.Version)}
}

func purl(locator string) []reference { return []reference{{"PACKAGE-MANAGER", "purl", locator}} }
