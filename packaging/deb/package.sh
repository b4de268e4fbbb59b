# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# What the scripts that make packages have in common: packaging/deb/build* read it with `.`, after `package=NAME`.
#
# The version is that of the sources (packaging/version), or TORPOR_DEB_VERSION: a test makes itself a later one of the same
# programs, in a TORPOR_DEB_FOLDER of its own, faster with a lower TORPOR_DEB_LEVEL (xz, 0 to 9). The same sources and
# programs make the same package, byte for byte.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
umask 022
export LC_ALL=C.UTF-8
release=.build/release
packaging=packaging/deb
version=${TORPOR_DEB_VERSION:-$(packaging/version)}
# Not changed by what is not committed: two builds of an edited tree are told apart by their content.
SOURCE_DATE_EPOCH=$(packaging/version --date)
export SOURCE_DATE_EPOCH
folder=${TORPOR_DEB_FOLDER:-.build/deb}
work=$folder/work-$package-$$
stage=$work/stage
trap 'rm -rf "$work"' EXIT
rm -rf "$work"
mkdir -p "$stage/DEBIAN" "$work/debian"

# put MODE FILE PATH: as `install` does, folders included.
put() { install -D -m "$1" "$2" "$stage/$3"; }

# put_json FILE PATH: without white space, which takes half of a schema, and which no reader of JSON needs.
put_json() {
    python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin), ensure_ascii=False, separators=(",", ":")))' \
        <"$1" >"$work/compact.json"
    put 644 "$work/compact.json" "$2"
}

# put_page FILE PATH: a page that names what it names where the package has it.
put_page() {
    packaging/deb/pages --page "$1" >"$work/page"
    put 644 "$work/page" "$2"
}

# put_compressed FILE PATH: without a name and a time inside.
put_compressed() {
    mkdir -p "$(dirname "$stage/$2")"
    gzip -9n <"$1" >"$stage/$2.gz"
}

# put_program OPTION-OF-STRIP MODE FILE PATH
put_program() {
    put "$2" "$3" "$4"
    $packaging/strip "$stage/$4" "$1"
}

# maintainer_scripts FOLDER: those that are there, and the list of configuration files.
maintainer_scripts() {
    local file
    for file in postinst prerm postrm; do
        if [ -e "$1/$file" ]; then install -m 755 "$1/$file" "$stage/DEBIAN/$file"; fi
    done
    if [ -e "$1/conffiles" ]; then install -m 644 "$1/conffiles" "$stage/DEBIAN/conffiles"; fi
}

# finish: the files that each package has, the control file, and the package, at $deb. In $work/substvars may be more.
finish() {
    packaging/changelog "$version" >"$work/debian/changelog"
    put_compressed "$work/debian/changelog" "usr/share/doc/$package/changelog"
    $packaging/components copyright "$package" "$stage"
    $packaging/components spdx "$package" "$version" "$stage"
    cp $packaging/control "$work/debian/control"
    touch "$work/substvars"
    (
        cd "$stage"
        find . -type f ! -path './DEBIAN/*' ! -path './etc/*' -printf '%P\n' | sort | xargs md5sum >DEBIAN/md5sums
    )
    chmod 644 "$stage/DEBIAN/md5sums"
    # It fails where a program needs a library that no package of Debian has, but for the runtime, which is no other's
    # business: the package of the supervisor has it.
    (
        cd "$work"
        mapfile -t programs < <(
            find stage -type f -not -path 'stage/DEBIAN/*' -print0 | sort -z | while IFS= read -r -d '' file; do
                if [[ $(readelf -d "$file" 2>/dev/null) == *NEEDED* ]]; then printf -- '-e%s\n' "$file"; fi
            done
        )
        if [ ${#programs[@]} -gt 0 ]; then
            dpkg-shlibdeps -Tsubstvars "${programs[@]}" 2>said || { cat said >&2; exit 1; }
            # Where a library has no version in its name, it only warns.
            grep -v libtorpor-swift said >others || true
            cat others >&2
            ! grep -q 'cannot find library' others || exit 1
        fi
        dpkg-gencontrol "-p$package" -Pstage -Tsubstvars -fdebian/files
    )
    deb=$folder/${package}_${version}_$(sed -n 's/^Architecture: //p' "$stage/DEBIAN/control").deb
    dpkg-deb --build --root-owner-group -Zxz "-z${TORPOR_DEB_LEVEL:-6}" "$stage" "$deb" >/dev/null
    echo "$deb: $(awk -v size="$(stat -c %s "$deb")" 'BEGIN { printf "%.2f", size / 1e6 }') MB," \
        "installed $(find "$stage" -path "$stage/DEBIAN" -prune -o -type f -printf '%s\n' |
            awk '{ all += $1 } END { printf "%.2f", all / 1e6 }') MB"
}
