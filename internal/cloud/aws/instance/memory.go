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

// Memory holds the minimum memory in bytes of the nodes of a type with an image. It is safe for concurrent use. It is
// stored as the data of a ConfigMap: one key per type and image, such as "m5.large_ami-0123456789abcdef0", with the
// bytes in decimal. At 40 bytes each, a ConfigMap holds about 20,000 entries.
type Memory struct {
	mu      sync.RWMutex
	least   map[typeAndImage]int64
	version uint64
}

type typeAndImage struct{ typeName, imageID string }

// NewMemory returns an empty Memory.
func NewMemory() *Memory { return &Memory{least: map[typeAndImage]int64{}} }

// minPlausibleShare is the minimum fraction of a type's memory that a node of it can have. Lower observations are
// errors, and would be kept for as long as the image.
const minPlausibleShare = 0.5

// Observe records the memory of a registered node (status.capacity.memory, in bytes) and reports whether that changed
// anything that must be stored. Implausible values are ignored.
func (m *Memory) Observe(t *catalog.Type, imageID string, bytes int64) bool {
	reported := t.MemoryMiB * miB
	if imageID == "" || bytes > reported || float64(bytes) < minPlausibleShare*float64(reported) {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lower(typeAndImage{t.Name, imageID}, bytes)
}

func (m *Memory) lower(key typeAndImage, bytes int64) bool {
	if least, known := m.least[key]; known && least <= bytes {
		return false
	}
	m.least[key] = bytes
	m.version++
	return true
}

// Least returns the minimum memory in bytes seen with the type and image.
func (m *Memory) Least(typeName, imageID string) (bytes int64, known bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	bytes, known = m.least[typeAndImage{typeName, imageID}]
	return bytes, known
}

// Retain drops the images for which inUse is false, and reports whether there were any.
func (m *Memory) Retain(inUse func(imageID string) bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.least)
	maps.DeleteFunc(m.least, func(key typeAndImage, _ int64) bool { return !inUse(key.imageID) })
	if len(m.least) == before {
		return false
	}
	m.version++
	return true
}

// Version changes with every addition and removal.
func (m *Memory) Version() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.version
}

const keySeparator = "_" // occurs in neither a type's name nor an image's ID, and is valid in the keys of a ConfigMap

// Data returns all entries as the data of a ConfigMap.
func (m *Memory) Data() map[string]string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	data := make(map[string]string, len(m.least))
	for key, bytes := range m.least {
		data[key.typeName+keySeparator+key.imageID] = strconv.FormatInt(bytes, 10)
	}
	return data
}

// Restore loads what Data returned in an earlier process. Invalid entries are skipped and named in the error.
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
		m.lower(typeAndImage{typeName, imageID}, bytes)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("reading the memory seen on nodes: %w", errors.Join(wrong...))
	}
	return nil
}
