package allocation

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"allocator/inventory"
)

// Groups take distinct drives: two groups that each fit do not fit together when they need the same drive.
//
// Requirements: R32
func TestDrivesFit(t *testing.T) {
	t.Parallel()
	ssd := func(count, gb int64) inventory.Drive {
		return inventory.Drive{Count: count, NominalGB: gb, Medium: inventory.MediumSSD, Interface: "nvme"}
	}
	hdd := func(count, gb int64) inventory.Drive {
		return inventory.Drive{Count: count, NominalGB: gb, Medium: inventory.MediumHDD, Interface: "sata"}
	}
	tests := map[string]struct {
		drives []inventory.Drive
		groups []DriveGroup
		want   bool
	}{
		"nothing is asked of any drives":             {nil, nil, true},
		"there are no drives":                        {[]inventory.Drive{}, []DriveGroup{{CountMin: 1}}, false},
		"exactly as many as asked for":               {[]inventory.Drive{ssd(2, 960)}, []DriveGroup{{CountMin: 2, NominalGBMin: 960}}, true},
		"one drive is too few for two":               {[]inventory.Drive{ssd(1, 960)}, []DriveGroup{{CountMin: 2}}, false},
		"a gigabyte too small":                       {[]inventory.Drive{ssd(2, 959)}, []DriveGroup{{CountMin: 2, NominalGBMin: 960}}, false},
		"equal drives in two entries count together": {[]inventory.Drive{ssd(1, 960), ssd(1, 960)}, []DriveGroup{{CountMin: 2, NominalGBMin: 960}}, true},
		"an unknown medium is no SSD":                {[]inventory.Drive{{Count: 9, NominalGB: 960}}, []DriveGroup{{CountMin: 1, Medium: inventory.MediumSSD}}, false},
		"an unknown interface is no NVMe":            {[]inventory.Drive{{Count: 9, NominalGB: 960}}, []DriveGroup{{CountMin: 1, Interface: "nvme"}}, false},
		"an unknown medium serves an open group":     {[]inventory.Drive{{Count: 9, NominalGB: 960}}, []DriveGroup{{CountMin: 1}}, true},
		"a drive does not serve two groups":          {[]inventory.Drive{ssd(2, 960)}, []DriveGroup{{CountMin: 2}, {CountMin: 1, Medium: inventory.MediumSSD}}, false},
		"the choosy group gets what only it can use": {[]inventory.Drive{ssd(1, 960), hdd(1, 960)}, []DriveGroup{{CountMin: 1}, {CountMin: 1, Medium: inventory.MediumSSD}}, true},
		"each two of three groups fit, but not all":  {[]inventory.Drive{ssd(1, 960), ssd(1, 480)}, []DriveGroup{{CountMin: 1}, {CountMin: 1}, {CountMin: 1}}, false},
		"the large one is kept for who needs it":     {[]inventory.Drive{ssd(1, 8000), ssd(1, 480)}, []DriveGroup{{CountMin: 1}, {CountMin: 1, NominalGBMin: 8000}}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, drivesFit(tt.drives, tt.groups))
			require.Equal(t, tt.want, assignable(units(tt.drives), demands(tt.groups)), "the search that tries every assignment")
		})
	}
}

// Hall's theorem says the same as trying every assignment.
//
// Requirements: R32
func TestDrivesFitAsEveryAssignmentSays(t *testing.T) {
	t.Parallel()
	seen := map[bool]int{}
	rapid.Check(t, func(rt *rapid.T) {
		drives, groups := drawDrives(rt), drawGroups(rt)
		if rapid.Bool().Draw(rt, "groups that fit") {
			groups = nil
			for _, d := range drives {
				groups = append(groups, DriveGroup{CountMin: min(d.Count, 2), NominalGBMin: d.NominalGB, Medium: d.Medium})
			}
		}
		want := assignable(units(drives), demands(groups))
		require.Equal(rt, want, drivesFit(drives, groups), "%+v for %+v", drives, groups)
		if len(groups) > 1 {
			seen[want]++
		}
	})
	require.NotZero(t, seen[true], "no case of several groups fitted")
	require.NotZero(t, seen[false], "every case of several groups fitted")
}

// units lists every single drive.
func units(drives []inventory.Drive) []inventory.Drive {
	var list []inventory.Drive
	for _, d := range drives {
		list = append(list, slices.Repeat([]inventory.Drive{d}, int(d.Count))...)
	}
	return list
}

// demands lists every single wanted drive.
func demands(groups []DriveGroup) []DriveGroup {
	var list []DriveGroup
	for _, g := range groups {
		list = append(list, slices.Repeat([]DriveGroup{g}, int(g.CountMin))...)
	}
	return list
}

// assignable tries every way of giving each demand a drive of its own. It knows nothing of the function under test,
// not even when a drive fits.
func assignable(drives []inventory.Drive, wanted []DriveGroup) bool {
	if len(wanted) == 0 {
		return true
	}
	for i, d := range drives {
		w := wanted[0]
		fits := d.NominalGB >= w.NominalGBMin && (w.Medium == "" || w.Medium == d.Medium) && (w.Interface == "" || w.Interface == d.Interface)
		if fits && !slices.Contains(drives[:i], d) && assignable(slices.Delete(slices.Clone(drives), i, i+1), wanted[1:]) {
			return true
		}
	}
	return false
}
