package instance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

// Memory remembers the least memory that nodes of a type with an image have had, in bytes. It may be used from several
// goroutines. What it knows outlives the process as the data of a ConfigMap: one key per type and image,
// "m5.large_ami-0123456789abcdef0", with the bytes in decimal. At 40 bytes each, a ConfigMap holds some 20,000.
type Memory struct {
	mu      sync.RWMutex
	least   map[sighting]int64
	version uint64
}

type sighting struct{ typeName, imageID string }

// NewMemory knows nothing yet.
func NewMemory() *Memory { return &Memory{least: map[sighting]int64{}} }

// plausible is the least part of a type's memory that a node of it can have: anything lower is a mistake in what was
// seen, and would be remembered for as long as the image.
const plausible = 0.5

// Observe takes in what a registered node has (status.capacity.memory, in bytes) and reports whether that is news worth
// storing. What cannot be true of the type is ignored.
func (m *Memory) Observe(t *catalog.Type, imageID string, bytes int64) bool {
	reported := t.MemoryMiB * miB
	if imageID == "" || bytes > reported || float64(bytes) < plausible*float64(reported) {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lower(sighting{t.Name, imageID}, bytes)
}

func (m *Memory) lower(key sighting, bytes int64) bool {
	if least, known := m.least[key]; known && least <= bytes {
		return false
	}
	m.least[key] = bytes
	m.version++
	return true
}

// Least is the least memory in bytes seen with the type and image.
func (m *Memory) Least(typeName, imageID string) (bytes int64, known bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	bytes, known = m.least[sighting{typeName, imageID}]
	return bytes, known
}

// Retain forgets the images for which inUse is false, and reports whether there were any.
func (m *Memory) Retain(inUse func(imageID string) bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.least)
	maps.DeleteFunc(m.least, func(key sighting, _ int64) bool { return !inUse(key.imageID) })
	if len(m.least) == before {
		return false
	}
	m.version++
	return true
}

// Version changes whenever something is learned or forgotten.
func (m *Memory) Version() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.version
}

const keySeparator = "_" // in neither a type's name nor an image's id, and allowed in the keys of a ConfigMap

// Data is everything known, as the data of a ConfigMap.
func (m *Memory) Data() map[string]string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	data := make(map[string]string, len(m.least))
	for key, bytes := range m.least {
		data[key.typeName+keySeparator+key.imageID] = strconv.FormatInt(bytes, 10)
	}
	return data
}

// Restore takes in what Data gave to an earlier process. Entries that cannot be read are left out, and named in the error.
func (m *Memory) Restore(data map[string]string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var wrong []error
	for _, text := range slices.Sorted(maps.Keys(data)) {
		typeName, imageID, cut := strings.Cut(text, keySeparator)
		bytes, err := strconv.ParseInt(data[text], 10, 64)
		if !cut || typeName == "" || imageID == "" || err != nil || bytes <= 0 {
			wrong = append(wrong, fmt.Errorf("%q: is %q, want a type, %s and an image with a number of bytes", text, data[text], keySeparator))
			continue
		}
		m.lower(sighting{typeName, imageID}, bytes)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("reading the memory seen on nodes: %w", errors.Join(wrong...))
	}
	return nil
}
