package bill

import (
	"fmt"

	"github.com/karpenter-go/karpenter/plugin/table"
)

// Use is what pods of a row use at the moment, beside their requests: those pods of which it is known.
type Use struct {
	Pods int `json:"pods"`
	// CPU in millicores, Memory in bytes.
	CPU             int64 `json:"cpuMillicores"`
	Memory          int64 `json:"memoryBytes"`
	RequestedCPU    int64 `json:"requestedCPUMillicores"`
	RequestedMemory int64 `json:"requestedMemoryBytes"`
	// CPUShare and MemoryShare are usage as a part of the requests, 0 without requests.
	CPUShare    float64 `json:"cpuShare"`
	MemoryShare float64 `json:"memoryShare"`
}

// Usage is what is known of the usage of the pods of a Bill.
type Usage struct {
	// Unknown is why it is not known, empty if it is.
	Unknown string `json:"unknown,omitempty"`
	// Pods is the number of pods whose usage is known, Of that of all pods of the bill.
	Pods int `json:"pods"`
	Of   int `json:"of"`
	// RightSized is what requests that fit the usage would save; nil if that was not computed.
	RightSized *RightSized `json:"rightSized,omitempty"`
}

// RightSized compares the fleet at rest, as it is and with requests that fit the usage of this moment.
type RightSized struct {
	// Stopped says that neither could be planned in time. The other fields are zero then.
	Stopped string `json:"stopped,omitempty"`
	// Pods is the number of pods with other requests, Percent what their requests are of the usage.
	Pods    int `json:"pods"`
	Percent int `json:"percentOfUsage"`
	// AtRest is the price per hour of the fleet when no step is worthwhile any more, Fit the same with the other requests.
	AtRest USD `json:"atRestPerHour"`
	Fit    USD `json:"rightSizedPerHour"`
	// Saving is the difference, negative if the requests that fit are larger.
	Saving         USD `json:"savingPerHour"`
	SavingPerMonth USD `json:"savingPerMonth"`
	// Unschedulable and UnschedulableNow are the pods without a place with and without the other requests.
	Unschedulable    int `json:"unschedulablePods,omitempty"`
	UnschedulableNow int `json:"unschedulablePodsAsIs,omitempty"`
}

func (r *RightSized) String() string {
	if r.Stopped != "" {
		return "what requests that fit the usage would save is " + r.Stopped
	}
	text := fmt.Sprintf("with requests of %d%% of this usage (%s), the fleet at rest costs %s USD per hour in place of %s: ", r.Percent,
		table.Plural(r.Pods, "pod"), r.Fit.Text(4), r.AtRest.Text(4))
	if r.Saving >= 0 {
		text += r.SavingPerMonth.Text(2) + " less per month"
	} else {
		text += (-r.SavingPerMonth).Text(2) + " more per month"
	}
	if r.Unschedulable+r.UnschedulableNow > 0 {
		text += fmt.Sprintf("; without a place: %s, %d as it is", table.Plural(r.Unschedulable, "pod"), r.UnschedulableNow)
	}
	return text
}

// usageLines returns what is known of usage, in sentences.
func (b *Bill) usageLines() []string {
	switch u := b.Usage; {
	case u == nil:
		return nil
	case u.Unknown != "":
		return []string{u.Unknown}
	case u.RightSized == nil:
		return []string{u.String()}
	default:
		return []string{u.String(), u.RightSized.String()}
	}
}

func (u *Usage) String() string {
	return fmt.Sprintf("usage is that of %d of %s at this moment, not of a day", u.Pods, table.Plural(u.Of, "pod"))
}

// useColumns are the columns of usage beside requests, of a bill with usage.
func useColumns() []table.Column[Row] {
	column := func(title string, text func(*Use) string, share func(*Use) float64) table.Column[Row] {
		cell := func(of func(*Use) string) func(*Row) string {
			return func(r *Row) string {
				if r.Use == nil {
					return "-"
				}
				return of(r.Use)
			}
		}
		return table.Column[Row]{Title: title + " USED", Right: true,
			Cell:   cell(func(u *Use) string { return text(u) + " " + table.Percent(share(u)) }),
			Narrow: cell(func(u *Use) string { return table.Percent(share(u)) })}
	}
	return []table.Column[Row]{
		column("CPU", func(u *Use) string { return Cores(u.CPU) + "/" + Cores(u.RequestedCPU) }, func(u *Use) float64 { return u.CPUShare }),
		column("MEMORY", func(u *Use) string { return memory(u.Memory) + "/" + memory(u.RequestedMemory) },
			func(u *Use) float64 { return u.MemoryShare }),
	}
}
