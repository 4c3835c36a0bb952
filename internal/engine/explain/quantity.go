package explain

import (
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// manyMillicores is the amount of cpu above which it is written in cores.
const manyMillicores = 10_000

// Quantity returns an amount of a resource in the notation of users: "500m", "2" and "255.9" of cpu, "1.5Gi" of
// memory, "3" of devices. Bytes are rounded to two decimals of their unit if no exact form is short.
func Quantity(resource string, value int64) string {
	switch {
	case resource == "cpu" && value%1000 == 0:
		return strconv.FormatInt(value/1000, 10)
	case resource == "cpu" && value >= manyMillicores:
		return decimal(value, 1000)
	case resource == "cpu":
		return strconv.FormatInt(value, 10) + "m"
	case inBytes(resource):
		return bytes(value)
	case resource == model.ResourceUSD:
		return strconv.FormatFloat(float64((value+5e4)/1e5)/1e4, 'f', -1, 64)
	}
	return strconv.FormatInt(value, 10)
}

func inBytes(resource string) bool {
	return resource == "memory" || resource == "ephemeral-storage" || strings.HasPrefix(resource, "hugepages-")
}

// unitOf returns the unit in which the engine counts a resource.
func unitOf(resource string) string {
	switch {
	case resource == "cpu":
		return "millicores"
	case inBytes(resource):
		return "bytes"
	case resource == model.ResourceUSD:
		return "nano-USD per hour"
	}
	return "units"
}

// byteUnits starts with the largest unit; amounts are exact in one of them if possible.
var byteUnits = []struct {
	name string
	size int64
}{{"Ei", 1 << 60}, {"Pi", 1 << 50}, {"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10}}

func bytes(value int64) string {
	if value < 0 {
		return strconv.FormatInt(value, 10)
	}
	for _, unit := range byteUnits {
		// Quarters are short and exact. Other amounts are exact in a smaller unit or rounded in the largest.
		if value >= unit.size && value%(unit.size/4) == 0 && value/unit.size < 1<<14 {
			return decimal(value, unit.size) + unit.name
		}
	}
	for _, unit := range byteUnits {
		if value >= unit.size {
			return decimal(value, unit.size) + unit.name
		}
	}
	return strconv.FormatInt(value, 10)
}

// decimal returns value in the unit with at most two decimals.
func decimal(value, unit int64) string {
	whole, rest := value/unit, value%unit
	hundredths := int64(float64(rest)/float64(unit)*100 + 0.5)
	if hundredths == 100 {
		whole, hundredths = whole+1, 0
	}
	text := strconv.FormatInt(whole, 10)
	if hundredths == 0 {
		return text
	}
	return text + "." + strings.TrimRight(strconv.FormatInt(100+hundredths, 10)[1:], "0")
}

// exactly returns the amount without rounding.
func exactly(resource string, value int64) string {
	if inBytes(resource) && value > 0 && value%1024 == 0 {
		return strconv.FormatInt(value/1024, 10) + "Ki"
	}
	if inBytes(resource) {
		return strconv.FormatInt(value, 10)
	}
	if resource == "cpu" && value%1000 != 0 {
		return strconv.FormatInt(value, 10) + "m"
	}
	return Quantity(resource, value)
}

// pair returns two amounts as text, with different texts for different amounts.
func pair(resource string, a, b int64) (string, string) {
	left, right := Quantity(resource, a), Quantity(resource, b)
	if a != b && left == right {
		return exactly(resource, a), exactly(resource, b)
	}
	return left, right
}

// Money returns nano-USD as USD with four decimals.
func Money(nano int64) string {
	return strconv.FormatFloat(float64(nano)/model.Nano, 'f', 4, 64)
}

// amounts returns a list as "2 of cpu, 4Gi of memory".
func amounts(list []quantity.Amount) string {
	parts := make([]string, 0, len(list))
	for _, a := range list {
		parts = append(parts, Quantity(a.Name, a.Value)+" of "+a.Name)
	}
	return strings.Join(parts, ", ")
}
