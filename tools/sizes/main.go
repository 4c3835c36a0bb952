// Command sizes prints what is in a Go program for Linux: the sections of its file, and the bytes of its symbols by module
// or package, the largest first. The program must have its symbols, so it is built without the linker's flag -s:
//
//	go build -o bin/with-symbols ./plugin/kubectl-karpenter
//	go -C tools run ./sizes ../bin/with-symbols            modules
//	go -C tools run ./sizes -packages ../bin/with-symbols  packages
//
// Tables that the linker makes of all functions and types (pclntab, type:*) belong to no package, and are rows of their own.
//
// It also says whether package text/template, which html/template uses, is linked with what calls methods by a name
// that is known at run time only. The linker then keeps every exported method of every type that is in an interface,
// and all that these methods call, which is about half of a program that has the Kubernetes and AWS clients. Other code
// may do the same by package reflect: that is not examined.
//
// It must not depend on the rest of the repository: it reads files.
package main

import (
	"cmp"
	"debug/elf"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	packages := flag.Bool("packages", false, "rows are packages instead of modules")
	rows := flag.Int("rows", 40, "largest rows that are printed")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "sizes: want a program with symbols, as `go build -o FILE` writes it")
		os.Exit(2)
	}
	program, err := read(flag.Arg(0))
	if err != nil {
		fmt.Fprintf(os.Stderr, "sizes: %v\n", err)
		os.Exit(1)
	}
	program.print(os.Stdout, *packages, *rows)
}

// program is what a file has, in bytes.
type program struct {
	loaded    uint64            // all that is in the file without symbols
	sections  map[string]uint64 // of these
	symbols   map[string]uint64 // by the path of their package
	templates bool              // callsByName is linked
}

// callsByName is the function of text/template that calls methods by names of run time.
const callsByName = "text/template.(*state).evalField"

func read(path string) (program, error) {
	file, err := elf.Open(path)
	if err != nil {
		return program{}, fmt.Errorf("reading %s: %w", path, err)
	}
	defer file.Close()
	p := program{sections: map[string]uint64{}, symbols: map[string]uint64{}}
	stored := map[elf.SectionIndex]bool{}
	for i, section := range file.Sections {
		if section.Flags&elf.SHF_ALLOC != 0 && section.Type != elf.SHT_NOBITS {
			stored[elf.SectionIndex(i)] = true
			p.sections[section.Name] += section.FileSize
			p.loaded += section.FileSize
		}
	}
	symbols, err := file.Symbols()
	if err != nil {
		return program{}, fmt.Errorf("reading the symbols of %s, which must be built without -s: %w", path, err)
	}
	for _, symbol := range symbols {
		p.templates = p.templates || symbol.Name == callsByName
		if stored[symbol.Section] && elf.ST_TYPE(symbol.Info) != elf.STT_SECTION {
			p.symbols[packageOf(symbol.Name)] += symbol.Size
		}
	}
	return p, nil
}

// packageOf returns the path of the package of a symbol. Paths end at the first dot after the last slash; what instantiates a
// generic function is in brackets, and belongs to the function.
func packageOf(symbol string) string {
	for _, made := range []string{"type:", "go:"} {
		if strings.HasPrefix(symbol, made) {
			return made + "*"
		}
	}
	name, _, _ := strings.Cut(symbol, "[")
	slash := strings.LastIndexByte(name, '/')
	dot := strings.IndexByte(name[slash+1:], '.')
	if dot < 0 {
		return "(linker)"
	}
	return strings.ReplaceAll(name[:slash+1+dot], "%2e", ".")
}

// moduleOf returns about the module of a package: the first three elements of a path with a domain, two of k8s.io and the
// like, and all packages of Go itself as one.
func moduleOf(path string) string {
	elements := strings.Split(path, "/")
	domain := elements[0]
	switch {
	case !strings.Contains(domain, ".") && !strings.HasPrefix(path, "type:") && !strings.HasPrefix(path, "go:") && path != "(linker)":
		return "Go"
	case domain == "github.com" && len(elements) > 4 && elements[2] == "aws-sdk-go-v2" && elements[3] == "service":
		return strings.Join(elements[:5], "/")
	case domain == "github.com":
		return strings.Join(elements[:min(3, len(elements))], "/")
	default:
		return strings.Join(elements[:min(2, len(elements))], "/")
	}
}

func (p program) print(out io.Writer, packages bool, rows int) {
	fmt.Fprintf(out, "%10.2f MB without symbols, of which\n", mb(p.loaded))
	list(out, p.sections, 8)
	by := map[string]uint64{}
	for path, size := range p.symbols {
		if !packages {
			path = moduleOf(path)
		}
		by[path] += size
	}
	fmt.Fprintln(out, "\nsymbols:")
	list(out, by, rows)
	if p.templates {
		fmt.Fprintln(out, "\ntext/template is linked: every exported method is kept")
	} else {
		fmt.Fprintln(out, "\ntext/template is not linked")
	}
}

// list prints the largest rows, and the rest as one.
func list(out io.Writer, sizes map[string]uint64, rows int) {
	names := make([]string, 0, len(sizes))
	for name := range sizes {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a, b))
	})
	rest := uint64(0)
	for i, name := range names {
		if i >= rows {
			rest += sizes[name]
			continue
		}
		fmt.Fprintf(out, "%10.2f %s\n", mb(sizes[name]), name)
	}
	if rest > 0 {
		fmt.Fprintf(out, "%10.2f others\n", mb(rest))
	}
}

func mb(bytes uint64) float64 { return float64(bytes) / 1e6 }
