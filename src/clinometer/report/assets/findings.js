// The values of the finding tables: on the page once, column by column, read when a table or chart needs them.
const findings = (() => {
  const tables = new Map();

  // As packing.py writes columns: a code is one or more of these characters, equally many in a column.
  const LETTERS = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).filter((letter) => !'"\\<>&'.includes(letter));
  const placeOf = new Map(LETTERS.map((letter, place) => [letter, place]));

  function places(codes, width) {
    const found = [];
    for (let i = 0; i < codes.length; i += width) {
      let place = 0;
      for (let j = i; j < i + width; j += 1) place = place * LETTERS.length + placeOf.get(codes[j]);
      found.push(place);
    }
    return found;
  }

  function decode(codes, values) {
    let width = 1;
    while (LETTERS.length ** width < values.length) width += 1;
    return places(codes, width).map((place) => values[place]);
  }

  function fromBits(codes) {
    const halves = places(codes, 5);
    const bits = new DataView(new ArrayBuffer(8));
    return Array.from({ length: halves.length / 2 }, (_, i) => {
      bits.setUint32(0, halves[2 * i]);
      bits.setUint32(4, halves[2 * i + 1]);
      const value = bits.getFloat64(0);
      return Number.isNaN(value) ? null : value;
    });
  }

  function unpack(packed) {
    if (Array.isArray(packed)) return packed;
    if (packed.bits) return fromBits(packed.bits);
    if (packed.words) return packed.texts.map((codes) => decode(codes, packed.words).join(" "));
    return decode(packed.at, unpack(packed.each));
  }

  function read(id) {
    const { size, folded, columns } = JSON.parse(document.getElementById(id).textContent);
    const kinds = columns.map(({ kind }) => kind);
    const numbers = {}; // estimate, low, high, p, q, n: those that were computed
    const labels = [];
    const cells = columns.map(({ kind, ...fields }) => {
      const lists = Object.entries(fields).map(([name, packed]) => [name, unpack(packed)]);
      if (kind === "label") labels.push(lists[0][1]);
      else Object.assign(numbers, Object.fromEntries(lists));
      const [first, second] = lists.map(([, values]) => values);
      return second ? first.map((low, i) => [low, second[i]]) : first;
    });
    return { size, folded, kinds, cells, labels, numbers };
  }

  function table(id) {
    if (!tables.has(id)) tables.set(id, read(id));
    return tables.get(id);
  }

  return { table };
})();
