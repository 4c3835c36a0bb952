package karpenter

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// rooms are the parts of the repository by the prefixes of their packages: a package belongs to the room with the longest.
var rooms = []string{"api", "charts", "cloud", "cmd", "internal/cloud", "internal/cluster", "internal/controller", "internal/engine",
	"internal/execute", "internal/gates", "internal/legacy", "internal/telemetry", "internal/testing", "internal/transport", "plugin"}

// roomOf returns the room of a package, "" for one that is not of this repository.
func roomOf(pkg string) string {
	best := ""
	for _, room := range rooms {
		at := "./" + room
		if (pkg == at || strings.HasPrefix(pkg, at+"/")) && len(room) > len(best) {
			best = room
		}
	}
	return best
}

// floors computes the floor of each room: one above the highest of those that its packages import. It returns the rooms
// that have none, because they import each other, with an import for each arrow between them.
func floors(graph imports) (floor map[string]int, up []string) {
	arrows := map[string]map[string]string{}
	for _, pkg := range slices.Sorted(maps.Keys(graph)) {
		from := roomOf(pkg)
		if from != "" && arrows[from] == nil {
			arrows[from] = map[string]string{}
		}
		for _, imported := range graph[pkg] {
			if to := roomOf(imported); from != "" && to != "" && to != from && arrows[from][to] == "" {
				arrows[from][to] = fmt.Sprintf("%s -> %s by %s, which imports %s", from, to, pkg, imported)
			}
		}
	}
	floor = map[string]int{}
	for changed := true; changed; {
		changed = false
		for room, to := range arrows {
			at, known := 0, true
			for other := range to {
				below, ready := floor[other]
				known, at = known && ready, max(at, below+1)
			}
			if _, done := floor[room]; known && !done {
				floor[room], changed = at, true
			}
		}
	}
	for _, room := range slices.Sorted(maps.Keys(arrows)) {
		if _, done := floor[room]; done {
			continue
		}
		for _, other := range slices.Sorted(maps.Keys(arrows[room])) {
			if _, done := floor[other]; !done {
				up = append(up, arrows[room][other])
			}
		}
	}
	return floor, up
}

// TestRooms checks that no arrow runs up between rooms: each room has a floor above all that it imports.
func TestRooms(t *testing.T) {
	graph := loadImports(t)
	floor, up := floors(graph)
	for _, arrow := range up {
		t.Errorf("these rooms import each other: %s", arrow)
	}
	for pkg := range graph {
		if strings.HasPrefix(pkg, "./") && roomOf(pkg) == "" && pkg != "./" {
			t.Errorf("%s is in no room", pkg)
		}
	}
	for _, room := range slices.Sorted(maps.Keys(floor)) {
		t.Logf("floor %d: %s", floor[room], room)
	}
}

// entryPoints are the packages of a room that others may import, each with those that may, for the rooms that are not open
// to all.
var entryPoints = map[string]map[string][]string{
	// One for each program: the controller links nothing of migrate.
	"internal/legacy": {
		"./internal/legacy":         {"./cmd/karpenter"},
		"./internal/legacy/migrate": {"./plugin/kubectl-karpenter"},
	},
}

// hiddenImports returns the imports that enter a room by another package than an entry point, or by one that is for others.
func hiddenImports(graph imports) (found []string) {
	for _, pkg := range slices.Sorted(maps.Keys(graph)) {
		for _, imported := range graph[pkg] {
			room := roomOf(imported)
			entries, closed := entryPoints[room]
			if !closed || room == roomOf(pkg) || slices.Contains(entries[imported], pkg) {
				continue
			}
			why := fmt.Sprintf("only %v may", entries[imported])
			if entries[imported] == nil {
				why = fmt.Sprintf("the entry points are %v", slices.Sorted(maps.Keys(entries)))
			}
			found = append(found, fmt.Sprintf("%s imports %s: %s", pkg, imported, why))
		}
	}
	return found
}

// TestEntryPoints checks that the rest of the product knows only the entry points of a room, and each program its own.
func TestEntryPoints(t *testing.T) {
	for _, found := range hiddenImports(loadImports(t)) {
		t.Error(found)
	}
	graph := imports{"./cmd/karpenter": {"./internal/legacy", "./internal/legacy/webhook", "./internal/legacy/migrate"},
		"./internal/legacy": {"./internal/legacy/webhook"}, "./plugin/doctor": {"./internal/legacy"},
		"./plugin/kubectl-karpenter": {"./internal/legacy/migrate", "./cloud/kwok"}}
	want := []string{
		"./cmd/karpenter imports ./internal/legacy/webhook: the entry points are [./internal/legacy ./internal/legacy/migrate]",
		"./cmd/karpenter imports ./internal/legacy/migrate: only [./plugin/kubectl-karpenter] may",
		"./plugin/doctor imports ./internal/legacy: only [./cmd/karpenter] may",
	}
	if got := hiddenImports(graph); !slices.Equal(got, want) {
		t.Errorf("hiddenImports finds %q, want %q", got, want)
	}
}

// TestRoomsBite checks that an import in both directions is found.
func TestRoomsBite(t *testing.T) {
	graph := imports{"./internal/cloud/aws": {"./api/aws/v1"}, "./internal/engine/plan": {"./internal/cloud/aws/catalog"},
		"./internal/cloud/aws/catalog": {"./internal/engine/model", "fmt"}, "./api/aws/v1": nil, "./internal/engine/model": nil}
	floor, up := floors(graph)
	want := []string{"internal/cloud -> internal/engine by ./internal/cloud/aws/catalog, which imports ./internal/engine/model",
		"internal/engine -> internal/cloud by ./internal/engine/plan, which imports ./internal/cloud/aws/catalog"}
	if !slices.Equal(up, want) || floor["api"] != 0 || len(floor) != 1 {
		t.Errorf("floors %v and arrows %q, want only that of api and %q", floor, up, want)
	}
	graph["./internal/cloud/aws/catalog"] = nil
	if floor, up := floors(graph); len(up) > 0 || floor["internal/engine"] != 2 || floor["internal/cloud"] != 1 {
		t.Errorf("floors %v and arrows %q, want engine above cloud", floor, up)
	}
}
